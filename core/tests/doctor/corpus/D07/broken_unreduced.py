import mortice as torch
import mortice.nn as nn

# raises: grad can be implicitly created only for scalar outputs; got shape [16]
torch.manual_seed(0)
model = nn.Linear(6, 3)
criterion = nn.CrossEntropyLoss(reduction="none")
loss = criterion(model(torch.randn(16, 6)), torch.randint(0, 3, (16,)))
loss.backward()
