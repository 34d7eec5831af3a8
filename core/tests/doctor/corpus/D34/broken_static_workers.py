# static
import mortice as torch
from mortice.utils.data import DataLoader


def train_critic(critic, generator, optimizer, dataset, rounds):
    real_loader = DataLoader(dataset, batch_size=64, shuffle=True, num_workers=4)
    while rounds > 0:
        for _ in range(5):
            real = next(iter(real_loader))[0]  # <- D34
            fake = generator(torch.randn(64, 100)).detach()
            optimizer.zero_grad()
            loss = critic(fake).mean() - critic(real).mean()
            loss.backward()
            optimizer.step()
        rounds -= 1
