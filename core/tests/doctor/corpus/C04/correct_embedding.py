# Rows of an embedding that the batch does not use have no gradient; that is no vanishing.
import mortice as torch
from mortice import doctor, nn

torch.manual_seed(0)


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(5000, 8)
        self.lstm = nn.LSTM(8, 16, batch_first=True)
        self.out = nn.Linear(16, 5)

    def forward(self, tokens):
        return self.out(self.lstm(self.embedding(tokens))[0][:, -1])


print(doctor.check_gradients(Tagger(), nn.CrossEntropyLoss(), (torch.randint(0, 5000, (8, 12)), torch.randint(0, 5, (8,)))))
