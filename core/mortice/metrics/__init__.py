"""How good predictions are: metrics as functions, and as classes that are kept up over batches and backends.

Predictions come first and targets second, as in losses and in torchmetrics; scikit-learn has them the other way round.
Values are scikit-learn's. They are tensors on the device of the predictions, in float64 where it has that.
"""

from mortice.metrics.counted import (
    Accuracy,
    ConfusionMatrix,
    F1Score,
    Precision,
    Recall,
    TopKAccuracy,
    accuracy,
    confusion_matrix,
    f1,
    precision,
    recall,
    top_k_accuracy,
)
from mortice.metrics.errors import (
    LogLoss,
    MeanAbsoluteError,
    MeanMetric,
    MeanSquaredError,
    Perplexity,
    R2Score,
    log_loss,
    mean_absolute_error,
    mean_squared_error,
    perplexity,
    r2,
)
from mortice.metrics.metric import Metric, MetricCollection, UndefinedMetricWarning
from mortice.metrics.ranked import (
    AUROC,
    ROC,
    AveragePrecision,
    PrecisionRecallCurve,
    average_precision,
    precision_recall_curve,
    roc_auc,
    roc_curve,
)

__all__ = [
    "AUROC", "Accuracy", "AveragePrecision", "ConfusionMatrix", "F1Score", "LogLoss", "MeanAbsoluteError", "MeanMetric",
    "MeanSquaredError", "Metric", "MetricCollection", "Perplexity", "Precision", "PrecisionRecallCurve", "R2Score", "ROC",
    "Recall", "TopKAccuracy", "UndefinedMetricWarning", "accuracy", "average_precision", "confusion_matrix", "f1",
    "log_loss", "mean_absolute_error", "mean_squared_error", "perplexity", "precision", "precision_recall_curve", "r2",
    "recall", "roc_auc", "roc_curve", "top_k_accuracy",
]  # fmt: skip
