import mortice as torch
import mortice.nn as nn
import mortice.nn.functional as F


class Convnet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 6, 3)
        self.fc = nn.Linear(6 * 36, 4)

    def forward(self, x):
        x = F.relu(self.conv(x)).flatten(1)
        x = F.dropout(self.fc(x), p=0.3, training=self.training)
        return F.log_softmax(x, dim=1)


torch.manual_seed(0)
net = Convnet()
optimizer = torch.optim.Adam(net.parameters())
for step in range(6):
    x, y = torch.rand(8, 1, 8, 8), torch.randint(0, 4, (8,))
    loss = F.nll_loss(net(x), y)  # <- D21
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
