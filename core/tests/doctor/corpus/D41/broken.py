# raises: Initialise biases with zeros_ or constant_
import mortice.nn as nn

model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
for p in model.parameters():
    nn.init.xavier_uniform_(p)
