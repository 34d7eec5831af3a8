# raises: which looks like hard labels
import mortice as torch
from mortice import metrics

torch.manual_seed(0)
y = torch.randint(0, 2, (200,))
logits = torch.randn(200, 2)
print(metrics.roc_auc(logits.argmax(1), y))
