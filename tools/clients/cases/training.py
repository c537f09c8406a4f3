"""Losses, metrics, optimisers, and the training loops that packages document."""

from __future__ import annotations

from typing import Any

import torch

from tools.clients.registry import Program, case


def small_net() -> Any:
    return torch.nn.Sequential(
        torch.nn.Linear(6, 12), torch.nn.ReLU(), torch.nn.Dropout(0.1), torch.nn.Linear(12, 3)
    )


METRIC_LOSSES = (
    "TripletMarginLoss ContrastiveLoss NTXentLoss SupConLoss CircleLoss MultiSimilarityLoss "
    "LiftedStructureLoss NPairsLoss AngularLoss FastAPLoss TupletMarginLoss IntraPairVarianceLoss "
    "MarginLoss GeneralizedLiftedStructureLoss SignalToNoiseRatioContrastiveLoss"
).split()
for _name in METRIC_LOSSES:

    @case("metric_learning", _name, compiled=False)
    def metric_loss(name: str = _name) -> Program:
        from pytorch_metric_learning import losses

        score = getattr(losses, name)()
        x = torch.randn(12, 6, requires_grad=True)
        labels = torch.arange(12) % 6
        return Program(lambda x: score(x, labels), (x,))


CLASS_LOSSES = (
    "ArcFaceLoss CosFaceLoss ProxyNCALoss ProxyAnchorLoss NormalizedSoftmaxLoss SoftTripleLoss"
)
for _name in CLASS_LOSSES.split():

    @case("metric_learning", _name, compiled=False)
    def class_loss(name: str = _name) -> Program:
        from pytorch_metric_learning import losses

        class Scored(torch.nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.front = torch.nn.Linear(6, 6)
                self.score = getattr(losses, name)(num_classes=6, embedding_size=6)

            def forward(self, x: Any, labels: Any) -> Any:
                return self.score(self.front(x), labels)

        return Program(
            Scored(), (torch.randn(12, 6), torch.arange(12) % 6), loss=lambda found: found
        )


CLASS_METRICS = (
    "accuracy precision recall f1_score confusion_matrix auroc average_precision cohen_kappa "
    "matthews_corrcoef specificity hamming_distance jaccard_index calibration_error"
).split()


@case("torchmetrics", "classification", train=False, compiled=False)
def classification() -> Program:
    import torchmetrics.functional as metrics

    probabilities = torch.rand(40, 4).softmax(-1)
    target = torch.randint(0, 4, (40,))

    def call(p: Any, t: Any) -> Any:
        return {
            name: getattr(metrics, name)(p, t, task="multiclass", num_classes=4)
            for name in CLASS_METRICS
        }

    return Program(call, (probabilities, target))


@case("torchmetrics", "regression", train=False, compiled=False)
def regression() -> Program:
    import torchmetrics.functional as metrics

    x, y = torch.rand(40), torch.rand(40)
    names = (
        "mean_squared_error mean_absolute_error r2_score pearson_corrcoef spearman_corrcoef "
        "kendall_rank_corrcoef explained_variance concordance_corrcoef mean_squared_log_error "
        "symmetric_mean_absolute_percentage_error log_cosh_error cosine_similarity"
    ).split()

    def call(x: Any, y: Any) -> Any:
        return {
            name: getattr(metrics, name)(*((x[None], y[None]) if "cosine" in name else (x, y)))
            for name in names
        }

    return Program(call, (x, y))


@case("torchmetrics", "images", train=False, compiled=False)
def images() -> Program:
    import torchmetrics.functional.image as metrics

    x, y = torch.rand(2, 3, 32, 32), torch.rand(2, 3, 32, 32)

    def call(x: Any, y: Any) -> Any:
        return [
            metrics.structural_similarity_index_measure(x, y, data_range=1.0),
            metrics.peak_signal_noise_ratio(x, y, data_range=1.0),
            metrics.universal_image_quality_index(x, y),
            metrics.spectral_angle_mapper(x, y),
            metrics.total_variation(x),
            metrics.error_relative_global_dimensionless_synthesis(x, y),
        ]

    return Program(call, (x, y))


@case("torchmetrics", "modules", train=False, compiled=False)
def metric_modules() -> Program:
    from torchmetrics import MeanMetric, MetricCollection
    from torchmetrics.classification import BinaryAUROC, BinaryF1Score, BinaryPrecisionRecallCurve

    def call() -> Any:
        found = MetricCollection([BinaryAUROC(), BinaryF1Score(), BinaryPrecisionRecallCurve()])
        mean = MeanMetric()
        for _ in range(3):
            found.update(torch.rand(20), torch.randint(0, 2, (20,)))
            mean.update(torch.rand(5))
        return found.compute(), mean.compute(), found.clone().compute()

    return Program(call)


OPTIMISERS = (
    "AdaBelief AdaBound AdaMod AdamP Adan ADOPT AggMo CAME DiffGrad FTRL Gravity Lamb LARS "
    "Lion MADGRAD NovoGrad PAdam Prodigy QHAdam RAdam Ranger21 SignSGD SM3 SOAP SophiaH Tiger Yogi "
    "StableAdamW ScheduleFreeAdamW GrokFastAdamW AdEMAMix"
).split()
for _name in OPTIMISERS:

    @case("pytorch_optimizer", _name, train=False, compiled=False)
    def optimiser(name: str = _name) -> Program:
        import pytorch_optimizer

        # Square matrices and as many targets: gradients of full rank, whose factors are determined.
        net = torch.nn.Sequential(torch.nn.Linear(6, 6), torch.nn.Tanh(), torch.nn.Linear(6, 6))
        kind = getattr(pytorch_optimizer, name)
        extra = {"num_iterations": 5} if name == "Ranger21" else {}
        steps = kind(net.parameters(), **extra)
        if hasattr(steps, "train"):
            steps.train()
        x, y = torch.randn(10, 6), torch.randn(10, 6)

        def call() -> Any:
            losses = []
            with torch.enable_grad():
                for _ in range(4):
                    steps.zero_grad()
                    loss = torch.nn.functional.mse_loss(net(x), y)
                    loss.backward(create_graph=name == "SophiaH")
                    steps.step()
                    losses.append(loss.detach())
            return losses, [p.detach() for p in net.parameters()]

        return Program(call, parameters=list(net.parameters()))


@case("torch_ema", "average", train=False, compiled=False)
def average() -> Program:
    from torch_ema import ExponentialMovingAverage

    net = small_net()

    def call() -> Any:
        mean = ExponentialMovingAverage(net.parameters(), decay=0.9)
        for _ in range(3):
            for entry in net.parameters():
                entry.data.add_(torch.randn_like(entry))
            mean.update()
        with mean.average_parameters():
            return [p.detach().clone() for p in net.parameters()]

    return Program(call, parameters=list(net.parameters()))


def lora(kind: str, **options: Any) -> None:
    @case("peft", kind)
    def adapted() -> Program:
        import peft
        import transformers

        config = transformers.LlamaConfig(
            vocab_size=99, hidden_size=32, num_hidden_layers=2, num_attention_heads=4,
            intermediate_size=48, max_position_embeddings=64,
        )  # fmt: skip
        model = peft.get_peft_model(
            transformers.LlamaForCausalLM(config), getattr(peft, f"{kind}Config")(**options)
        )
        ids = torch.randint(0, 99, (2, 12))
        return Program(model, kwargs={"input_ids": ids, "labels": ids})


TARGETS = {"target_modules": ["q_proj", "v_proj"], "task_type": "CAUSAL_LM"}
lora("Lora", r=4, **TARGETS)
lora("IA3", feedforward_modules=[], **TARGETS)
lora("LoHa", r=4, **TARGETS)
lora("LoKr", r=4, **TARGETS)
lora("AdaLora", total_step=10, init_r=4, **TARGETS)
lora("OFT", oft_block_size=4, **TARGETS)
lora("VBLoRA", r=2, num_vectors=8, vector_length=16, **TARGETS)
lora("PromptTuning", task_type="CAUSAL_LM", num_virtual_tokens=4)
lora("PrefixTuning", task_type="CAUSAL_LM", num_virtual_tokens=4)


@case("lightning", "fit", train=False, compiled=False)
def fit() -> Program:
    import lightning

    net = small_net()

    class Module(lightning.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.net = net
            self.seen: list[Any] = []

        def training_step(self, batch: Any, index: int) -> Any:
            x, y = batch
            loss = torch.nn.functional.cross_entropy(self.net(x), y)
            self.log("loss", loss)
            self.seen.append(loss.detach())
            return loss

        def configure_optimizers(self) -> Any:
            steps = torch.optim.Adam(self.parameters(), lr=1e-2)
            return [steps], [torch.optim.lr_scheduler.StepLR(steps, 1)]

    def call() -> Any:
        rows = torch.utils.data.TensorDataset(torch.randn(24, 6), torch.randint(0, 3, (24,)))
        module = Module()
        trainer = lightning.Trainer(
            max_epochs=2, accelerator="cpu", logger=False, enable_checkpointing=False,
            enable_progress_bar=False, enable_model_summary=False, inference_mode=False,
        )  # fmt: skip
        with torch.enable_grad():
            trainer.fit(module, torch.utils.data.DataLoader(rows, batch_size=8, shuffle=True))
        return module.seen, [p.detach() for p in net.parameters()]

    return Program(call, parameters=list(net.parameters()))


@case("accelerate", "loop", train=False, compiled=False)
def loop() -> Program:
    import accelerate

    def call() -> Any:
        helper = accelerate.Accelerator(cpu=True, gradient_accumulation_steps=2)
        net = small_net()
        steps = torch.optim.AdamW(net.parameters(), lr=1e-2)
        rows = torch.utils.data.TensorDataset(torch.randn(24, 6), torch.randint(0, 3, (24,)))
        loader = torch.utils.data.DataLoader(rows, batch_size=4, shuffle=True)
        plan = torch.optim.lr_scheduler.LinearLR(steps)
        net, steps, loader, plan = helper.prepare(net, steps, loader, plan)
        losses = []
        with torch.enable_grad():
            for x, y in loader:
                with helper.accumulate(net):
                    loss = torch.nn.functional.cross_entropy(net(x), y)
                    helper.backward(loss)
                    helper.clip_grad_norm_(net.parameters(), 1.0)
                    steps.step()
                    plan.step()
                    steps.zero_grad()
                losses.append(helper.gather(loss.detach()))
        return losses, [p.detach() for p in net.parameters()]

    return Program(call)


@case("transformers", "trainer", train=False, compiled=False, dtype="float32")
def trainer() -> Program:
    import tempfile

    import transformers

    config = transformers.BertConfig(
        vocab_size=99, hidden_size=32, num_hidden_layers=2, num_attention_heads=4,
        intermediate_size=48, max_position_embeddings=64, num_labels=3,
    )  # fmt: skip
    model = transformers.BertForSequenceClassification(config)
    rows = [
        {"input_ids": torch.randint(0, 99, (12,)), "labels": torch.tensor(i % 3)} for i in range(16)
    ]

    def call() -> Any:
        with tempfile.TemporaryDirectory() as folder, torch.enable_grad():
            options = transformers.TrainingArguments(
                folder, per_device_train_batch_size=4, num_train_epochs=2, logging_steps=1,
                use_cpu=True, report_to=[], save_strategy="no", disable_tqdm=True, seed=5,
                learning_rate=1e-3, warmup_steps=2, dataloader_num_workers=0,
            )  # fmt: skip
            work = transformers.Trainer(model, options, train_dataset=rows)
            work.train()
            losses = [row["loss"] for row in work.state.log_history if "loss" in row]
        return losses, [p.detach() for p in model.parameters()]

    return Program(call, parameters=list(model.parameters()))


@case("ignite", "engine", train=False, compiled=False)
def engine() -> Program:
    from ignite.engine import Events, create_supervised_evaluator, create_supervised_trainer
    from ignite.metrics import Accuracy, Loss

    def call() -> Any:
        net = small_net()
        score = torch.nn.CrossEntropyLoss()
        steps = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
        rows = [(torch.randn(8, 6), torch.randint(0, 3, (8,))) for _ in range(4)]
        train = create_supervised_trainer(net, steps, score)
        seen: list[Any] = []
        train.add_event_handler(Events.ITERATION_COMPLETED, lambda e: seen.append(e.state.output))
        checks = {"accuracy": Accuracy(), "loss": Loss(score)}
        judge = create_supervised_evaluator(net, metrics=checks)
        with torch.enable_grad():
            train.run(rows, max_epochs=2)
        judge.run(rows)
        return seen, judge.state.metrics

    return Program(call)


@case("sentence_transformers", "encode")
def encode() -> Program:
    import transformers
    from sentence_transformers import losses as _losses  # noqa: F401
    from sentence_transformers.util import cos_sim, semantic_search

    config = transformers.BertConfig(
        vocab_size=99, hidden_size=32, num_hidden_layers=1, num_attention_heads=4,
        intermediate_size=48, max_position_embeddings=64,
    )  # fmt: skip

    class Pooled(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.bert = transformers.BertModel(config)

        def forward(self, ids: Any) -> Any:
            found = self.bert(ids).last_hidden_state.mean(1)
            hits = semantic_search(found.detach(), found.detach(), top_k=2)
            return cos_sim(found, found), [hit["corpus_id"] for row in hits for hit in row]

    return Program(Pooled(), (torch.randint(0, 99, (4, 12)),))


@case("safetensors", "round_trip", train=False, compiled=False, quick=True)
def round_trip() -> Program:
    from safetensors.torch import load, save

    def call() -> Any:
        kept = {"a": torch.randn(3, 4), "b": torch.arange(5), "c": torch.randn(2).bfloat16()}
        data = save(kept)
        return load(data), len(data)

    return Program(call)
