"""Iterable pipes, by the names of PyTorch and torchdata.

Owns the short public names; a pipe's class calls itself by the long one.
"""

from __future__ import annotations

from ..datapipe import IterDataPipe
from .archives import Bz2FileLoaderIterDataPipe as Bz2FileLoader
from .archives import DecompressorIterDataPipe as Decompressor
from .archives import ExtractorIterDataPipe as Extractor
from .archives import RarArchiveLoaderIterDataPipe as RarArchiveLoader
from .archives import TarArchiveLoaderIterDataPipe as TarArchiveLoader
from .archives import XzFileLoaderIterDataPipe as XzFileLoader
from .archives import ZipArchiveLoaderIterDataPipe as ZipArchiveLoader
from .cacheholder import EndOnDiskCacheHolderIterDataPipe as EndOnDiskCacheHolder
from .cacheholder import InMemoryCacheHolderIterDataPipe as InMemoryCacheHolder
from .cacheholder import OnDiskCacheHolderIterDataPipe as OnDiskCacheHolder
from .callable import CollatorIterDataPipe as Collator
from .callable import FlatMapperIterDataPipe as FlatMapper
from .callable import MapperIterDataPipe as Mapper
from .columns import DropperIterDataPipe as Dropper
from .columns import EnumeratorIterDataPipe as Enumerator
from .columns import FlattenIterDataPipe as Flattener
from .columns import IndexAdderIterDataPipe as IndexAdder
from .columns import Rows2ColumnarIterDataPipe as Rows2Columnar
from .columns import SliceIterDataPipe as Slicer
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
from .concurrent import BatchAsyncMapperIterDataPipe as BatchAsyncMapper
from .concurrent import BatchMapperIterDataPipe as BatchMapper
from .concurrent import ThreadPoolMapperIterDataPipe as ThreadPoolMapper
from .filelister import FileListerIterDataPipe as FileLister
from .fileopener import FileOpenerIterDataPipe as FileOpener
from .fsspec import AISFileListerIterDataPipe as AISFileLister
from .fsspec import AISFileLoaderIterDataPipe as AISFileLoader
from .fsspec import FSSpecFileListerIterDataPipe as FSSpecFileLister
from .fsspec import FSSpecFileOpenerIterDataPipe as FSSpecFileOpener
from .fsspec import FSSpecSaverIterDataPipe as FSSpecSaver
from .fsspec import IoPathFileListerIterDataPipe as IoPathFileLister
from .fsspec import IoPathFileOpenerIterDataPipe as IoPathFileOpener
from .fsspec import IoPathSaverIterDataPipe as IoPathSaver
from .fsspec import S3FileListerIterDataPipe as S3FileLister
from .fsspec import S3FileLoaderIterDataPipe as S3FileLoader
from .grouping import BatcherIterDataPipe as Batcher
from .grouping import BucketBatcherIterDataPipe as BucketBatcher
from .grouping import GrouperIterDataPipe as Grouper
from .grouping import MaxTokenBucketizerIterDataPipe as MaxTokenBucketizer
from .grouping import UnBatcherIterDataPipe as UnBatcher
from .keys import IterKeyZipperIterDataPipe as IterKeyZipper
from .keys import MapKeyZipperIterDataPipe as MapKeyZipper
from .keys import MapToIterConverterIterDataPipe as MapToIterConverter
from .online import GDriveReaderDataPipe as GDriveReader
from .online import HTTPReaderIterDataPipe as HttpReader
from .online import OnlineReaderIterDataPipe as OnlineReader
from .prefetching import FullSyncIterDataPipe as FullSync
from .prefetching import PinMemoryIterDataPipe as PinMemory
from .prefetching import PrefetcherIterDataPipe as Prefetcher
from .randomsplit import RandomSplitterIterDataPipe as RandomSplitter
from .routeddecoder import RoutedDecoderIterDataPipe as RoutedDecoder
from .saving import HashCheckerIterDataPipe as HashChecker
from .saving import SaverIterDataPipe as Saver
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
from .tables import DataFrameMakerIterDataPipe as DataFrameMaker
from .tables import HuggingFaceHubReaderIterDataPipe as HuggingFaceHubReader
from .tables import ParquetDFLoaderIterDataPipe as ParquetDataFrameLoader
from .tables import WebDatasetIterDataPipe as WebDataset
from .text import CSVDictParserIterDataPipe as CSVDictParser
from .text import CSVParserIterDataPipe as CSVParser
from .text import JsonParserIterDataPipe as JsonParser
from .text import LineReaderIterDataPipe as LineReader
from .text import ParagraphAggregatorIterDataPipe as ParagraphAggregator
from .tfrecordloader import TFRecordExample as TFRecordExample
from .tfrecordloader import TFRecordExampleSpec as TFRecordExampleSpec
from .tfrecordloader import TFRecordLoaderIterDataPipe as TFRecordLoader
from .utils import IterableWrapperIterDataPipe as IterableWrapper

__all__ = [
    "AISFileLister",
    "AISFileLoader",
    "BatchAsyncMapper",
    "BatchMapper",
    "Batcher",
    "BucketBatcher",
    "Bz2FileLoader",
    "CSVDictParser",
    "CSVParser",
    "Collator",
    "Concater",
    "Cycler",
    "DataFrameMaker",
    "Decompressor",
    "Demultiplexer",
    "Dropper",
    "EndOnDiskCacheHolder",
    "Enumerator",
    "Extractor",
    "FSSpecFileLister",
    "FSSpecFileOpener",
    "FSSpecSaver",
    "FileLister",
    "FileOpener",
    "Filter",
    "FlatMapper",
    "Flattener",
    "Forker",
    "FullSync",
    "GDriveReader",
    "Grouper",
    "HashChecker",
    "Header",
    "HttpReader",
    "HuggingFaceHubReader",
    "InBatchShuffler",
    "InMemoryCacheHolder",
    "IndexAdder",
    "IoPathFileLister",
    "IoPathFileOpener",
    "IoPathSaver",
    "IterDataPipe",
    "IterKeyZipper",
    "IterableWrapper",
    "JsonParser",
    "LengthSetter",
    "LineReader",
    "MapKeyZipper",
    "MapToIterConverter",
    "Mapper",
    "MaxTokenBucketizer",
    "Multiplexer",
    "MultiplexerLongest",
    "OnDiskCacheHolder",
    "OnlineReader",
    "ParagraphAggregator",
    "ParquetDataFrameLoader",
    "PinMemory",
    "Prefetcher",
    "RandomSplitter",
    "RarArchiveLoader",
    "Repeater",
    "RoundRobinDemultiplexer",
    "RoutedDecoder",
    "Rows2Columnar",
    "S3FileLister",
    "S3FileLoader",
    "SampleMultiplexer",
    "Sampler",
    "Saver",
    "ShardExpander",
    "ShardingFilter",
    "ShardingRoundRobinDispatcher",
    "ShuffledFlatMapper",
    "Shuffler",
    "Slicer",
    "StreamReader",
    "TFRecordLoader",
    "TarArchiveLoader",
    "ThreadPoolMapper",
    "UnBatcher",
    "UnZipper",
    "WebDataset",
    "XzFileLoader",
    "ZipArchiveLoader",
    "Zipper",
    "ZipperLongest",
]
