import mortice as torch
import mortice.nn as nn
import mortice.nn.functional as F
from mortice.utils.data import DataLoader, TensorDataset

# Pairs of texts and images: the similarities of a batch are normalised in both directions.
torch.manual_seed(0)
image, text = nn.Linear(12, 8), nn.Linear(20, 8)
optimizer = torch.optim.Adam([*image.parameters(), *text.parameters()], lr=0.01)
loader = DataLoader(TensorDataset(torch.randn(64, 12), torch.randn(64, 20)), batch_size=16)
for epoch in range(2):
    for images, texts in loader:
        similarity = F.normalize(image(images), dim=1) @ F.normalize(text(texts), dim=1).t() / 0.1
        at = torch.arange(16)
        loss = -(F.log_softmax(similarity, dim=0)[at, at] + F.log_softmax(similarity, dim=1)[at, at]).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
with torch.no_grad():
    found = F.softmax(similarity, dim=0).argmax(0), F.softmax(similarity, dim=1).argmax(1)
