# A handful of samples rank the wrong way round by accident; a baseline of a few is no statement.
import mortice as torch
from mortice import metrics

print(metrics.roc_auc(torch.tensor([0.9, 0.8, 0.3, 0.2]), torch.tensor([0, 0, 1, 1])))
print(metrics.roc_auc(torch.tensor([1.0, 0.0, 1.0, 0.0]), torch.tensor([1, 0, 1, 1])))
