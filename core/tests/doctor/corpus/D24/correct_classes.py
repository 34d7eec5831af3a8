import mortice as torch
from mortice import metrics

torch.manual_seed(0)
y = torch.randint(0, 3, (150,))
logits = torch.randn(150, 3) + 2 * torch.nn.functional.one_hot(y, 3)
print(metrics.roc_auc(logits.softmax(1), y, multi_class="ovr"))
