"""What a run asks of Ray, and what it refuses before it asks anything."""

from __future__ import annotations

import socket
import sys

import pytest

from judge.errors import UsageError
from judge.run.cluster import for_workers
from judge.run.rays import Ray, gpus_each, own_cores, refuse_unreachable, workers_for
from judge.settings import resolve


@pytest.mark.parametrize(
    ("models", "cards", "gpus"),
    [
        (["vllm:big"], 8, 1),
        (["openai:gpt", "transformers:x"], 8, 1),
        (["vllm:big"], 0, 0),
        (["openai:gpt", "scripted:vllm"], 8, 0),
    ],
)
def test_workers_ask_for_cards_where_they_host_a_model(
    models: list[str], cards: float, gpus: int
) -> None:
    assert gpus_each(resolve({}), models, cards) == gpus


def test_how_many_cards_is_a_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JUDGE_WORKER_GPUS", "4")
    assert gpus_each(resolve({}), ["vllm:big"], 8) == 4


@pytest.mark.parametrize(
    ("wanted", "gpus", "whole", "free", "workers"),
    [
        (None, 0, {"CPU": 16.0}, {"CPU": 11.5}, 11),
        (None, 0, {"CPU": 2.0}, {}, 1),
        (3, 0, {"CPU": 4.0}, {"CPU": 1.0}, 3),
        (None, 2, {"CPU": 64.0, "GPU": 8.0}, {"CPU": 64.0, "GPU": 8.0}, 4),
        (None, 1, {"CPU": 4.0, "GPU": 8.0}, {"CPU": 4.0, "GPU": 8.0}, 4),
    ],
)
def test_how_many_workers(
    wanted: int | None, gpus: int, whole: dict[str, float], free: dict[str, float], workers: int
) -> None:
    assert workers_for(wanted, gpus, whole, free) == workers


def test_too_many_workers_are_refused_with_the_numbers() -> None:
    told = "has 2 CPU and a worker takes 1 CPU: it holds 2 workers, not 3; start more nodes"
    with pytest.raises(UsageError, match=told):
        workers_for(3, 0, {"CPU": 2.0}, {"CPU": 2.0})
    with pytest.raises(UsageError, match=r"2 GPU and .* 1 CPU, 4 GPU: .*JUDGE_WORKER_GPUS"):
        workers_for(None, 4, {"CPU": 9.0, "GPU": 2.0}, {"CPU": 9.0})


@pytest.mark.parametrize("address", ["here", "ray://127.0.0.1:10001", "127.0.0.1:", ":6379"])
def test_an_address_of_another_form_is_refused(address: str) -> None:
    with pytest.raises(UsageError, match="name the cluster as HOST:PORT"):
        refuse_unreachable(address)


def test_an_address_where_nothing_answers_is_refused() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        with pytest.raises(UsageError, match=f"127.0.0.1:{port}: nothing answers.*ray start"):
            refuse_unreachable(f"127.0.0.1:{port}")


def test_without_the_library_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(UsageError, match=r"pip install 'judge\[ray\]'"):
        Ray(resolve({"engine": "ray"}), ["scripted:x"])


def test_a_ray_of_our_own_holds_no_more_than_the_machine_can_bear() -> None:
    assert (own_cores(None, 2), own_cores(1, 2), own_cores(8, 2)) == (2, 2, 8)
    with pytest.raises(UsageError, match=r"--workers 9: .* 2 cores take 8 of them at most"):
        own_cores(9, 2)


def test_a_cache_folder_means_the_same_wherever_the_worker_is() -> None:
    found = for_workers(resolve({"cache_dir": "kept", "engine": "ray"}))
    assert found.cache_dir is not None and found.cache_dir.is_absolute()
    assert found.cache_dir.name == "kept" and found.engine == "local"
