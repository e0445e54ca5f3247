"""`judge generate`: records that a model writes, checked as validation checks them."""
