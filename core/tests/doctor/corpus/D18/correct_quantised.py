import mortice as torch
from mortice import nn
from mortice.utils.data import DataLoader, TensorDataset

# A vector-quantised autoencoder: straight-through copy, a codebook that learns by its own loss.
torch.manual_seed(0)
x = torch.randn(256, 8)
loader = DataLoader(TensorDataset(x), batch_size=32, shuffle=True)
encoder = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))
decoder = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 8))
codebook = nn.Embedding(12, 4)
codebook.weight.data.uniform_(-1 / 12, 1 / 12)
optimizer = torch.optim.Adam([*encoder.parameters(), *decoder.parameters(), *codebook.parameters()], lr=1e-2)
losses = []
for epoch in range(4):
    for (batch,) in loader:
        z = encoder(batch)
        distance = z.pow(2).sum(1, keepdim=True) - 2 * z @ codebook.weight.t() + codebook.weight.pow(2).sum(1)
        q = codebook(distance.argmin(1))
        loss = nn.functional.mse_loss(q, z.detach()) + 0.25 * nn.functional.mse_loss(z, q.detach())
        q = z + (q - z).detach()
        loss = loss + nn.functional.mse_loss(decoder(q), batch)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
