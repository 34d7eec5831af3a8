# raises: Give preds[:, 1]; with the other column the result would be of class 0
import mortice as torch
from mortice import metrics

torch.manual_seed(0)
y = torch.randint(0, 2, (200,))
probabilities = torch.randn(200, 2).softmax(1)
print(metrics.roc_auc(probabilities, y))
