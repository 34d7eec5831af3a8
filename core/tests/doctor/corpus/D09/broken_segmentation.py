import mortice as torch
import mortice.nn as nn
import mortice.nn.functional as F

torch.manual_seed(0)
net = nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 4, 1))
images = torch.rand(6, 1, 10, 10)
masks = (4 * images[:, 0]).long()
optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
for step in range(6):
    log_probabilities = F.log_softmax(net(images), dim=-1)  # <- D09
    loss = F.nll_loss(log_probabilities, masks)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
