import mortice as torch
import mortice.nn as nn


class Segmenter(nn.Module):
    def __init__(self, classes=3):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.Dropout(0.1), nn.Conv2d(8, classes, 1))
        self.head = nn.Softmax(dim=1)

    def forward(self, x):
        return self.head(self.body(x))


torch.manual_seed(0)
images = torch.rand(16, 1, 12, 12)
masks = (images[:, 0] * 3).long()
net = Segmenter()
loss_fn = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(net.parameters())
for i in range(4):
    batch = slice(4 * i, 4 * i + 4)
    out = net(images[batch])
    loss = loss_fn(out.permute(0, 2, 3, 1).reshape(-1, 3), masks[batch].reshape(-1))  # <- D04
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
