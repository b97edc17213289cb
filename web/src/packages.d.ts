declare module "d3-flame-graph" {
  export default function flamegraph(): any;
}
declare module "d3-selection" {
  export function select(element: Element): any;
}
