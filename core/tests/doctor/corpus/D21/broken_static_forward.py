# static
import torch
import torch.nn as nn
import torch.nn.functional as F


class SentimentRNN(nn.Module):
    def __init__(self, vocabulary, embedding, hidden, classes):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, embedding)
        self.lstm = nn.LSTM(embedding, hidden, batch_first=True)
        self.fc = nn.Linear(hidden, classes)
        self.dropout = nn.Dropout(0.5)

    def forward(self, text):
        _, (hidden, _) = self.lstm(self.embedding(text))
        return self.dropout(self.fc(hidden[-1]))


model = SentimentRNN(5000, 100, 256, 5)
optimizer = torch.optim.Adam(model.parameters())
for text, label in train_loader:
    optimizer.zero_grad()
    predictions = model(text)
    loss = F.cross_entropy(predictions, label)  # <- D21
    loss.backward()
    optimizer.step()
