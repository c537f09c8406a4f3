"""Parts of `flambeau.hub` without network: archives, trusted repositories, the progress bar.

Each file stands alone; none of them imports `flambeau.hub` or knows where the cache lies.
"""
