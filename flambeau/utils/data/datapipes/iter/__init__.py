"""Iterable pipes, by the names of PyTorch and torchdata.

Owns the short public names; a pipe's class calls itself by the long one.
"""

from __future__ import annotations

from ..datapipe import IterDataPipe
from .callable import CollatorIterDataPipe as Collator
from .callable import FlatMapperIterDataPipe as FlatMapper
from .callable import MapperIterDataPipe as Mapper
from .combinatorics import InBatchShufflerIterDataPipe as InBatchShuffler
from .combinatorics import SamplerIterDataPipe as Sampler
from .combinatorics import ShuffledFlatMapperIterDataPipe as ShuffledFlatMapper
from .combinatorics import ShufflerIterDataPipe as Shuffler
from .combining import ConcaterIterDataPipe as Concater
from .combining import MultiplexerIterDataPipe as Multiplexer
from .combining import MultiplexerLongestIterDataPipe as MultiplexerLongest
from .combining import SampleMultiplexerDataPipe as SampleMultiplexer
from .combining import ZipperIterDataPipe as Zipper
from .combining import ZipperLongestIterDataPipe as ZipperLongest
from .filelister import FileListerIterDataPipe as FileLister
from .fileopener import FileOpenerIterDataPipe as FileOpener
from .grouping import BatcherIterDataPipe as Batcher
from .grouping import BucketBatcherIterDataPipe as BucketBatcher
from .grouping import GrouperIterDataPipe as Grouper
from .grouping import MaxTokenBucketizerIterDataPipe as MaxTokenBucketizer
from .grouping import UnBatcherIterDataPipe as UnBatcher
from .randomsplit import RandomSplitterIterDataPipe as RandomSplitter
from .routeddecoder import RoutedDecoderIterDataPipe as RoutedDecoder
from .selecting import CyclerIterDataPipe as Cycler
from .selecting import FilterIterDataPipe as Filter
from .selecting import HeaderIterDataPipe as Header
from .selecting import LengthSetterIterDataPipe as LengthSetter
from .selecting import RepeaterIterDataPipe as Repeater
from .sharding import ShardExpanderIterDataPipe as ShardExpander
from .sharding import ShardingFilterIterDataPipe as ShardingFilter
from .sharding import ShardingRoundRobinDispatcherIterDataPipe as ShardingRoundRobinDispatcher
from .splitting import DemultiplexerIterDataPipe as Demultiplexer
from .splitting import ForkerIterDataPipe as Forker
from .splitting import RoundRobinDemultiplexerIterDataPipe as RoundRobinDemultiplexer
from .splitting import UnZipperIterDataPipe as UnZipper
from .streamreader import StreamReaderIterDataPipe as StreamReader
from .utils import IterableWrapperIterDataPipe as IterableWrapper

__all__ = [
    "Batcher",
    "BucketBatcher",
    "Collator",
    "Concater",
    "Cycler",
    "Demultiplexer",
    "FileLister",
    "FileOpener",
    "Filter",
    "FlatMapper",
    "Forker",
    "Grouper",
    "Header",
    "InBatchShuffler",
    "IterDataPipe",
    "IterableWrapper",
    "LengthSetter",
    "Mapper",
    "MaxTokenBucketizer",
    "Multiplexer",
    "MultiplexerLongest",
    "RandomSplitter",
    "Repeater",
    "RoundRobinDemultiplexer",
    "RoutedDecoder",
    "SampleMultiplexer",
    "Sampler",
    "ShardExpander",
    "ShardingFilter",
    "ShardingRoundRobinDispatcher",
    "ShuffledFlatMapper",
    "Shuffler",
    "StreamReader",
    "UnBatcher",
    "UnZipper",
    "Zipper",
    "ZipperLongest",
]
