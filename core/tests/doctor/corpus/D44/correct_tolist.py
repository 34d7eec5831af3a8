import mortice as torch
from mortice import nn

torch.manual_seed(0)
outputs = nn.Linear(3, 1)(torch.randn(10, 3)).squeeze(1)
curve = outputs.tolist()
with torch.no_grad():
    again = nn.Linear(3, 1)(torch.randn(10, 3)).cpu()
print(max(curve), float(again.max()))
