#!/usr/bin/env python3
"""A training step of a small transformer in PyTorch, for `make bench-gpu`: torch_step.py [--seconds N]

Prints one line of JSON with the steps a second, the first second left out."""
import argparse
import json
import time

import torch

WIDTH, HEADS, LAYERS, BATCH, LENGTH, WORDS = 512, 8, 6, 16, 256, 8192


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--seconds", type=float, default=10)
    args = options.parse_args()
    torch.manual_seed(1)
    layer = torch.nn.TransformerEncoderLayer(WIDTH, HEADS, 4 * WIDTH, batch_first=True)
    model = torch.nn.Sequential(torch.nn.Embedding(WORDS, WIDTH), torch.nn.TransformerEncoder(layer, LAYERS),
                                torch.nn.Linear(WIDTH, WORDS)).cuda()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    words = torch.randint(0, WORDS, (BATCH, LENGTH), device="cuda")

    def step():
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = torch.nn.functional.cross_entropy(model(words).flatten(0, 1), words.flatten())
        loss.backward()
        optimizer.step()
    warm = time.monotonic() + 1
    while time.monotonic() < warm:
        step()
    torch.cuda.synchronize()
    begin, steps = time.monotonic(), 0
    while time.monotonic() < begin + args.seconds:
        step()
        steps += 1
        if steps % 8 == 0:
            torch.cuda.synchronize()
    torch.cuda.synchronize()
    print(json.dumps({"steps": steps, "steps_per_s": steps / (time.monotonic() - begin)}))


if __name__ == "__main__":
    main()
