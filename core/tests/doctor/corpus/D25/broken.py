# raises: This one, of shape [6], was made by View
import mortice as torch
import mortice.nn as nn

layer = nn.Linear(3, 2)
optimizer = torch.optim.SGD([layer.weight.view(-1), layer.bias], lr=0.1)
