import mortice.nn as nn

model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
for p in model.parameters():
    if p.ndim > 1:
        nn.init.xavier_uniform_(p)
    else:
        nn.init.zeros_(p)
