# static
import mortice.nn.functional as F


def train_step(model, optimizer, x, y):
    optimizer.zero_grad()
    probabilities = F.softmax(model(x), dim=1)
    loss = F.nll_loss(probabilities, y)  # <- D14
    loss.backward()
    optimizer.step()
    return loss.item()
