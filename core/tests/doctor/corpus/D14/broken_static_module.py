# static
import torch
import torch.nn as nn


class CharRNN(nn.Module):
    def __init__(self, n_letters, hidden_size, n_categories):
        super().__init__()
        self.i2h = nn.Linear(n_letters + hidden_size, hidden_size)
        self.h2o = nn.Linear(hidden_size, n_categories)
        self.softmax = nn.Softmax(dim=1)

    def forward(self, line, hidden):
        hidden = torch.tanh(self.i2h(torch.cat((line, hidden), 1)))
        output = self.softmax(self.h2o(hidden))
        return output, hidden


rnn = CharRNN(57, 128, 18)
criterion = nn.NLLLoss()
optimizer = torch.optim.SGD(rnn.parameters(), lr=0.005)
hidden = torch.zeros(1, 128)
for category, line in training_pairs:
    optimizer.zero_grad()
    output, hidden = rnn(line, hidden.detach())
    loss = criterion(output, category)  # <- D14
    loss.backward()
    optimizer.step()
