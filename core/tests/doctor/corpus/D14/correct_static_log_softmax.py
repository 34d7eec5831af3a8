# static
import mortice.nn.functional as F


def train_step(model, optimizer, x, y):
    optimizer.zero_grad()
    scores = F.log_softmax(model(x), dim=1)
    loss = F.nll_loss(scores, y)
    loss.backward()
    optimizer.step()
    return loss.item()
