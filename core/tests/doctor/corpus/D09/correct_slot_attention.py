import mortice as torch
import mortice.nn.functional as F
from mortice import nn
from mortice.utils.data import DataLoader, TensorDataset

# Slots compete for inputs: softmax over the slots' dim, then each slot's weights are normalised over the inputs.
torch.manual_seed(0)
x = torch.randn(128, 10, 8)
loader = DataLoader(TensorDataset(x), batch_size=16, shuffle=True)


class Slots(nn.Module):
    def __init__(self, slots=4, dim=8):
        super().__init__()
        self.mu = nn.Parameter(torch.randn(1, slots, dim))
        self.to_q, self.to_k, self.to_v = (nn.Linear(dim, dim, bias=False) for _ in range(3))
        self.gru = nn.GRUCell(dim, dim)
        self.decode = nn.Linear(dim, dim + 1)

    def forward(self, x):
        slots = self.mu.expand(x.shape[0], -1, -1)
        k, v = self.to_k(x), self.to_v(x)
        for _ in range(2):
            attn = torch.einsum("bid,bjd->bij", self.to_q(slots), k).softmax(dim=1) + 1e-8
            updates = torch.einsum("bjd,bij->bid", v, attn / attn.sum(dim=-1, keepdim=True))
            slots = self.gru(updates.reshape(-1, 8), slots.reshape(-1, 8)).reshape(x.shape[0], -1, 8)
        out = self.decode(slots)
        return (out[..., :-1] * out[..., -1:].softmax(dim=1)).sum(1)


model = Slots()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
losses = []
for epoch in range(3):
    for (batch,) in loader:
        optimizer.zero_grad()
        loss = F.mse_loss(model(batch), batch.mean(1))
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
