"""Map-style pipes: each a function of a key.

Owns the short public names; a pipe's class calls itself by the long one.
"""

from __future__ import annotations

from ..datapipe import MapDataPipe
from .callable import MapperMapDataPipe as Mapper
from .combinatorics import ShufflerIterDataPipe as Shuffler
from .combining import ConcaterMapDataPipe as Concater
from .combining import UnZipperMapDataPipe as UnZipper
from .combining import ZipperMapDataPipe as Zipper
from .converter import IterToMapConverterMapDataPipe as IterToMapConverter
from .grouping import BatcherMapDataPipe as Batcher
from .utils import InMemoryCacheHolderMapDataPipe as InMemoryCacheHolder
from .utils import SequenceWrapperMapDataPipe as SequenceWrapper

__all__ = [
    "Batcher",
    "Concater",
    "InMemoryCacheHolder",
    "IterToMapConverter",
    "MapDataPipe",
    "Mapper",
    "SequenceWrapper",
    "Shuffler",
    "UnZipper",
    "Zipper",
]
