import mortice as torch
import mortice.nn.functional as F
from mortice import nn
from mortice.utils.data import DataLoader, TensorDataset

# Contrastive over the batch in both directions: log_softmax over dim 0 as well, read along the diagonal.
torch.manual_seed(0)
pictures = torch.randn(256, 12)
words = pictures[:, :6] + 0.1 * torch.randn(256, 6)
loader = DataLoader(TensorDataset(pictures, words), batch_size=32, shuffle=True)
see, read = nn.Linear(12, 8), nn.Linear(6, 8)
scale = nn.Parameter(torch.tensor(2.0))
optimizer = torch.optim.Adam([*see.parameters(), *read.parameters(), scale], lr=1e-2)
losses = []
for epoch in range(4):
    for picture, text in loader:
        a, b = F.normalize(see(picture), dim=-1), F.normalize(read(text), dim=-1)
        logits = scale.exp() * a @ b.t()
        labels = torch.arange(len(logits))
        clip = (F.cross_entropy(logits, labels) + F.cross_entropy(logits.t(), labels)) / 2
        cpc = -torch.diag(F.log_softmax(logits, dim=0)).mean()
        right = torch.sum(torch.eq(torch.argmax(F.softmax(logits, dim=0), dim=0), labels)).item()
        loss = clip + cpc
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
