"""The parts of saving and loading: archive (bytes), storages (tensors), tree (Python objects).

Owns nothing itself. Each part checks what the one below hands it and knows nothing of the one
above.
"""
