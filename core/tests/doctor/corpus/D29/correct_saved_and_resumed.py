import copy
import io

import mortice as torch
from mortice import nn
from mortice.nn.utils import parametrizations
from mortice.utils.data import DataLoader, TensorDataset

# Parametrised layers, hooks, copies and a checkpoint in the middle of training.
torch.manual_seed(0)
x = torch.randn(256, 8)
y = (x[:, 0] > 0).float()
loader = DataLoader(TensorDataset(x, y), batch_size=32, shuffle=True)


def make():
    return nn.Sequential(
        parametrizations.spectral_norm(nn.Linear(8, 16)), nn.LeakyReLU(0.2), parametrizations.weight_norm(nn.Linear(16, 1))
    )


model = make()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
seen = []
model[0].register_forward_hook(lambda module, args, out: seen.append(out.detach().mean()))
best, losses = None, []
for epoch in range(4):
    model.train()
    for inputs, targets in loader:
        optimizer.zero_grad()
        loss = nn.BCEWithLogitsLoss()(model(inputs).view(-1), targets)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    best = copy.deepcopy(model.state_dict())
    if epoch == 1:
        file = io.BytesIO()
        torch.save({"model": best, "optimizer": optimizer.state_dict()}, file)
        file.seek(0)
        state = torch.load(file)
        model = make()
        model.load_state_dict(state["model"])
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
        optimizer.load_state_dict(state["optimizer"])
    model.eval()
    with torch.inference_mode():
        right = ((model(x).squeeze(1) > 0) == (y > 0.5)).float().mean().item()
