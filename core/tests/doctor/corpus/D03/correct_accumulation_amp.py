import mortice as torch
from mortice import nn
from mortice.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x = torch.randn(240, 12)
y = (x[:, :3].sum(1) > 0).long()
loader = DataLoader(TensorDataset(x, y), batch_size=8, shuffle=True)

model = nn.Sequential(nn.Linear(12, 24), nn.ReLU(), nn.Dropout(0.1), nn.Linear(24, 2))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=1e-2, total_steps=24)
scaler = torch.amp.GradScaler("cpu", enabled=False)
accumulate = 4

losses = []
for epoch in range(3):
    model.train()
    for i, (inputs, targets) in enumerate(loader):
        with torch.autocast("cpu", enabled=False):
            loss = nn.functional.cross_entropy(model(inputs), targets) / accumulate
        scaler.scale(loss).backward()
        losses.append(loss.item() * accumulate)
        if (i + 1) % accumulate == 0 or i + 1 == len(loader):
            scaler.unscale_(optimizer)
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            scaler.step(optimizer)
            scaler.update()
            optimizer.zero_grad(set_to_none=False)
            scheduler.step()
    model.eval()
    with torch.no_grad():
        right = (model(x).argmax(1) == y).float().mean().item()
