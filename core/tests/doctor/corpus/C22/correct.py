import mortice as torch
from mortice import doctor, nn
from mortice.utils.data import DataLoader, Dataset, TensorDataset

torch.manual_seed(0)

sentences = [torch.randint(1, 100, (int(n),)) for n in torch.randint(4, 12, (60,))]
data = [(s, i % 2) for i, s in enumerate(sentences)]


def pad(batch):
    tokens, labels = zip(*batch)
    return nn.utils.rnn.pad_sequence(list(tokens), batch_first=True), torch.tensor(labels)


print(doctor.check_dataset(DataLoader(data, batch_size=8, collate_fn=pad)))
