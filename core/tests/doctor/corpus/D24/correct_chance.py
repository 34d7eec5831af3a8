# A model that knows nothing is near 0.5, on either side of it.
import mortice as torch
from mortice import metrics

torch.manual_seed(3)
y = torch.randint(0, 2, (300,))
print(metrics.roc_auc(torch.rand(300), y))
