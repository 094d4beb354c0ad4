"""Losses other than least squares: the law, its constants and their errors by the loss asked for."""
