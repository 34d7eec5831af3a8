import mortice as torch
from mortice import nn
from mortice.nn.utils.rnn import pad_sequence
from mortice.utils.data import DataLoader

torch.manual_seed(0)
pairs = [(torch.randint(1, 9, (2 + i % 6,)), torch.randint(1, 9, (3 + i % 4,))) for i in range(64)]


def collate(batch):
    a, b = zip(*batch)
    return pad_sequence(a, batch_first=True), pad_sequence(b, batch_first=True)


class Translator(nn.Module):
    def __init__(self, dim=16):
        super().__init__()
        self.embed = nn.Embedding(9, dim, padding_idx=0)
        self.place = nn.Parameter(torch.zeros(1, 16, dim))
        self.body = nn.Transformer(dim, 2, 1, 1, 32, dropout=0.1, batch_first=True)
        self.out = nn.Linear(dim, 9)

    def forward(self, a, b):
        causal = nn.Transformer.generate_square_subsequent_mask(b.shape[1])
        x = self.embed(a) + self.place[:, : a.shape[1]]
        y = self.embed(b) + self.place[:, : b.shape[1]]
        h = self.body(x, y, tgt_mask=causal, src_key_padding_mask=a == 0, tgt_key_padding_mask=b == 0,
                      memory_key_padding_mask=a == 0)  # fmt: skip
        return self.out(h)


model = Translator()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, betas=(0.9, 0.98), eps=1e-9)
losses = []
for epoch in range(2):
    for a, b in DataLoader(pairs, batch_size=8, shuffle=True, collate_fn=collate):
        logits = model(a, b[:, :-1])
        gold = b[:, 1:]
        each = nn.functional.cross_entropy(logits.transpose(1, 2), gold, reduction="none")
        mask = (gold != 0).float()
        loss = (each * mask).sum() / mask.sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
