import mortice as torch
from mortice import metrics

torch.manual_seed(0)
y = torch.randint(0, 2, (200,))
probabilities = (y + torch.randn(200)).sigmoid()
auc = metrics.AUROC()
auc.update((probabilities > 0.5).float(), y)
print(auc.compute())  # <- D24
