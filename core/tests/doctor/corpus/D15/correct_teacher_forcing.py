import mortice as torch
from mortice import nn
from mortice.nn.utils.rnn import pack_padded_sequence, pad_sequence
from mortice.utils.data import DataLoader

torch.manual_seed(0)
PAD, BOS, EOS = 0, 1, 2
pairs = []
for i in range(96):
    source = torch.randint(3, 12, (3 + i % 5,))
    pairs.append((source, torch.cat([torch.tensor([BOS]), source.flip(0), torch.tensor([EOS])])))


def collate(batch):
    sources, targets = zip(*batch)
    lengths = torch.tensor([len(s) for s in sources])
    return pad_sequence(sources, True, PAD), lengths, pad_sequence(targets, True, PAD)


loader = DataLoader(pairs, batch_size=16, shuffle=True, collate_fn=collate)


class Seq2Seq(nn.Module):
    def __init__(self, dim=24):
        super().__init__()
        self.embed = nn.Embedding(12, dim, padding_idx=PAD)
        self.encoder = nn.GRU(dim, dim, batch_first=True)
        self.cell = nn.GRUCell(dim, dim)
        self.out = nn.Linear(dim, 12)

    def forward(self, source, lengths, target, forcing):
        packed = pack_padded_sequence(self.embed(source), lengths, batch_first=True, enforce_sorted=False)
        _, hidden = self.encoder(packed)
        hidden, word, outputs = hidden[0], target[:, 0], []
        for t in range(1, target.shape[1]):
            hidden = self.cell(self.embed(word), hidden)
            outputs.append(self.out(hidden))
            word = target[:, t] if float(torch.rand(1)) < forcing else outputs[-1].argmax(1)
        return torch.stack(outputs, 1)


model = Seq2Seq()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
criterion = nn.CrossEntropyLoss(ignore_index=PAD)
losses = []
for epoch in range(4):
    for source, lengths, target in loader:
        optimizer.zero_grad()
        logits = model(source, lengths, target, forcing=0.5)
        loss = criterion(logits.reshape(-1, 12), target[:, 1:].reshape(-1))
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.item())
