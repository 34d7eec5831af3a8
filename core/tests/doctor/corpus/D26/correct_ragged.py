import mortice as torch
from mortice.nn.utils.rnn import pad_sequence
from mortice.utils.data import DataLoader

sentences = [(torch.arange(n), n % 2) for n in (3, 5, 2, 4, 6, 1)]


def collate(batch):
    tokens, labels = zip(*batch)
    return pad_sequence(tokens, batch_first=True), torch.tensor(labels)


for tokens, labels in DataLoader(sentences, batch_size=3, collate_fn=collate):
    assert tokens.shape[0] == 3
