"""What a person reads: the page of judged records, the folder of a calibration, tables in files."""
