// Runs the steps of a tool on Tailgate and on PostgreSQL; a check passes if both have the same result.
import { check, done } from './tap.js'

export const SCHEMA = 'orms'
const PORTS = { tailgate: process.env.PGPORT, postgres: process.env.CONTROL_PORT }

/**
 * Runs the steps of a tool on both servers, in the order in which they are given.
 *
 * `open` gets a port and returns the tool's connection. A step gets it, and an object that steps share.
 * What it returns is compared as JSON. An error of PostgreSQL is a mistake of the step: steps catch those that they expect.
 */
export async function compare(open, close, steps) {
  const servers = []
  for (const [name, port] of Object.entries(PORTS)) servers.push({ name, db: await open(Number(port)), shared: {} })
  for (const [name, step] of Object.entries(steps)) {
    await check(name, async () => {
      const results = await Promise.all(servers.map(({ db, shared }) => result(() => step(db, shared))))
      const [ours, theirs] = results
      if (theirs.error) throw new Error(`PostgreSQL: ${theirs.error}`)
      if (ours.error) throw new Error(ours.error)
      if (ours.value !== theirs.value) throw new Error(difference(ours.value, theirs.value))
    })
  }
  for (const { db } of servers) await close(db)
  done()
}

async function result(work) {
  try {
    return { value: JSON.stringify((await work()) ?? null, null, 1) }
  } catch (error) {
    const { code, message, sql } = cause(error)
    return { error: `${code ?? error.code} ${message ?? error.message} in ${sql ?? error.query ?? error.sql ?? ''}` }
  }
}

/** The driver's error in that of a tool. */
const cause = (error) => error.parent ?? error.driverError ?? error.cause ?? error

function difference(ours, theirs) {
  const [a, b] = [ours.split('\n'), theirs.split('\n')]
  const at = a.findIndex((line, i) => line !== b[i])
  const part = (lines) => lines.slice(Math.max(0, at - 3), at + 5).map((line) => line.trim()).join(' ')
  return `${part(a)} and not ${part(b)}`
}

/** An order of objects that a tool queries without ORDER BY. */
export const byName = (a, b) => (a.name < b.name ? -1 : 1)

/** The SQLSTATE and the tool's name of an error that a step expects. */
export async function refused(work) {
  try {
    await work()
  } catch (error) {
    return [cause(error).code, error.name]
  }
  return 'no error'
}
