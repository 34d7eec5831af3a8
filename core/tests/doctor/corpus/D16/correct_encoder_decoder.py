import mortice as torch
from mortice import nn
from mortice.utils.data import DataLoader, TensorDataset


class Reverser(nn.Module):
    """Reads digits, and writes them in reverse: the decoder begins with the encoder's state."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(11, 16)
        self.encoder = nn.GRU(16, 32, batch_first=True)
        self.decoder = nn.GRU(16, 32, batch_first=True)
        self.out = nn.Linear(32, 10)

    def forward(self, x, y):
        _, state = self.encoder(self.embed(x))
        token, logits = torch.full((len(x), 1), 10), []
        for t in range(y.size(1)):
            out, state = self.decoder(self.embed(token), state)
            logits.append(self.out(out))
            token = y[:, t : t + 1]
        return torch.cat(logits, dim=1)


torch.manual_seed(0)
x = torch.randint(0, 10, (160, 6))
loader = DataLoader(TensorDataset(x, x.flip(1)), batch_size=32, shuffle=True)
model = Reverser()
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
for epoch in range(3):
    for x, y in loader:
        loss = nn.functional.cross_entropy(model(x, y).flatten(0, 1), y.flatten())
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
