"""Reports for people: the page of judged records, the folder of a calibration, tables in files."""
