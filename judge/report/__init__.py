"""What a person looks at: pictures of workflows and of calibrations, a page of judged records."""
