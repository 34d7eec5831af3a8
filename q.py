import torch, mortice
for m in (torch,mortice):
    x=m.randn(2,3,4,4).contiguous(memory_format=m.channels_last)
    for f in (m.nn.AdaptiveAvgPool2d(1), m.nn.AdaptiveMaxPool2d(1), m.nn.AvgPool2d(4), m.nn.MaxPool2d(4), m.nn.Conv2d(3,5,4).to(memory_format=m.channels_last)):
        print(m.__name__, f(x).stride(), f(x).is_contiguous(memory_format=m.channels_last))
    print(x.mean((-1,-2),keepdim=True).stride())
