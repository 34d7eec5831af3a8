"""Two LSTM cells learn a sine wave with LBFGS and continue it: `python sine_lbfgs.py [--steps N] [--device NAME]`."""

import argparse

import numpy as np

import mortice as torch
import mortice.nn as nn
import mortice.optim as optim


def sine_waves(count, length, period=20):
    """Return waves (count, length) of one period that begin anywhere."""
    rng = np.random.default_rng(2)
    x = np.arange(length) + rng.integers(-4 * period, 4 * period, count).reshape(count, 1)
    return np.sin(x / period * 2 * np.pi).astype("float64")


class Sequence(nn.Module):
    def __init__(self, hidden=51):
        super().__init__()
        self.lstm1 = nn.LSTMCell(1, hidden)
        self.lstm2 = nn.LSTMCell(hidden, hidden)
        self.linear = nn.Linear(hidden, 1)
        self.hidden = hidden

    def forward(self, input, future=0):
        outputs = []
        h_t = torch.zeros(input.size(0), self.hidden, dtype=torch.double, device=input.device)
        c_t = torch.zeros(input.size(0), self.hidden, dtype=torch.double, device=input.device)
        h_t2 = torch.zeros(input.size(0), self.hidden, dtype=torch.double, device=input.device)
        c_t2 = torch.zeros(input.size(0), self.hidden, dtype=torch.double, device=input.device)

        for input_t in input.split(1, dim=1):
            h_t, c_t = self.lstm1(input_t, (h_t, c_t))
            h_t2, c_t2 = self.lstm2(h_t, (h_t2, c_t2))
            output = self.linear(h_t2)
            outputs += [output]
        for _ in range(future):  # if we should predict the future
            h_t, c_t = self.lstm1(output, (h_t, c_t))
            h_t2, c_t2 = self.lstm2(h_t, (h_t2, c_t2))
            output = self.linear(h_t2)
            outputs += [output]
        return torch.cat(outputs, dim=1)


def build(hidden=51):
    return Sequence(hidden).double()


def train(seq, steps, count=8, length=40, max_iter=4):
    device = next(seq.parameters()).device
    data = sine_waves(count, length)
    input = torch.from_numpy(data[:, :-1]).to(device)
    target = torch.from_numpy(data[:, 1:]).to(device)
    criterion = nn.MSELoss()
    # LBFGS sees all data at once.
    optimizer = optim.LBFGS(seq.parameters(), lr=0.5, max_iter=max_iter)
    losses = []
    for _ in range(steps):

        def closure():
            optimizer.zero_grad()
            out = seq(input)
            loss = criterion(out, target)
            loss.backward()
            return loss

        losses.append(optimizer.step(closure).item())
    return losses


def draw(wave):
    """Return a wave as a picture of nine lines."""
    heights = [round(4 - 4 * max(-1.0, min(1.0, v))) for v in wave]
    return "\n".join("".join("*" if height == line else " " for height in heights) for line in range(9))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--device", default="cpu")
    options = parser.parse_args()

    torch.manual_seed(0)
    seq = build().to(options.device)
    for step, loss in enumerate(train(seq, options.steps)):
        print(f"step {step:2d}  loss {loss:.6f}")
    with torch.no_grad():
        known = torch.from_numpy(sine_waves(1, 40)).to(options.device)
        continued = torch.cat([known, seq(known, future=40)[:, -40:]], dim=1)
    print("known for 40 steps, then predicted for 40:")
    print(draw(continued[0].tolist()))


if __name__ == "__main__":
    main()
