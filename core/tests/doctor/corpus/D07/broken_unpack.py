import mortice as torch
import mortice.nn as nn

# raises: only with a dim do max() and min() give values and indices
torch.manual_seed(0)
model = nn.Linear(6, 3)
with torch.no_grad():
    values, indices = torch.max(model(torch.randn(16, 6)))
