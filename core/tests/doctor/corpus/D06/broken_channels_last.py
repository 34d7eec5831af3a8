import mortice as torch
import mortice.nn as nn
from mortice.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
photos = torch.rand(40, 16, 16, 3)  # as image files hold them: height, width, channels
labels = torch.randint(0, 2, (40,))
model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(4 * 14 * 14, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for x, y in DataLoader(TensorDataset(photos, labels), batch_size=8):
    x = x.reshape(8, 3, 16, 16)  # <- D06
    loss = nn.functional.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
