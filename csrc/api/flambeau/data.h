// Data: sets of examples, transforms of them, samplers, and the loader that makes batches, with
// threads if it is told to.
//
//   auto set = torch::data::datasets::MNIST("data").map(Normalize<>(0.13, 0.31)).map(Stack<>());
//   auto loader = torch::data::make_data_loader(std::move(set), DataLoaderOptions(64).workers(2));
//   for (auto& batch : *loader) model(batch.data);
#pragma once

#include "flambeau/data/datasets.h"
#include "flambeau/data/loader.h"
#include "flambeau/data/samplers.h"
#include "flambeau/data/transforms.h"
