interface Props {
  ticks: readonly { value: number; label: string }[];
  /** Ends of the lines. */
  left: number;
  right: number;
  y: (bytes: number) => number;
}

/** Lines across a chart, with their bytes at the left. */
export function ByteAxis({ ticks, left, right, y }: Props) {
  return (
    <>
      {ticks.map(({ value, label }) => (
        <g key={value} class="tick">
          <line x1={left} x2={right} y1={y(value)} y2={y(value)} />
          <text x={left - 6} y={y(value)} text-anchor="end" dominant-baseline="middle">
            {label}
          </text>
        </g>
      ))}
    </>
  );
}
