"""The learning-rate schedules behind ``flambeau.optim.lr_scheduler``, one file per family."""
