"""Parts of `fx` that tracers are asked about; there is no tracer yet."""
